// An address with the token after its # logs in by itself. That part of an address is sent nowhere.
"use strict";

{
  const token = decodeURIComponent(location.hash.slice(1));
  if (token) {
    history.replaceState(null, "", location.pathname);
    document.getElementById("token").value = token;
    if (!document.querySelector(".wrong")) document.querySelector("form").submit();
  }
}
