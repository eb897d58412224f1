"""The weather, as far as an example knows it."""


def get_weather(city: str) -> str:
    """Tell today's weather in a city.

    Args:
        city: The city's name.
    """
    return f"sunny and 21 degrees in {city}"
