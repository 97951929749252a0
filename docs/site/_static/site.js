// What the theme's buttons lack for a screen reader: a name that holds the text one sees.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (summary.textContent.trim()) summary.removeAttribute("aria-label");
    else summary.setAttribute("aria-label", "Show or hide the pages below");
  }
  for (const search of document.querySelectorAll(".search-button__button[aria-label]")) {
    const text = search.textContent.replace(/\s+/g, " ").trim();
    if (text) search.setAttribute("aria-label", text);
  }
  // The icon's title is the text that one sees; the name has to hold it.
  for (const mode of document.querySelectorAll(".theme-switch-button")) {
    mode.setAttribute("aria-label", "Color mode: Light, Dark, System Settings");
  }
  // A region that scrolls can be reached by keyboard.
  for (const box of document.querySelectorAll(".bd-article pre, .bd-article table, .cell_output > div")) {
    if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
  }
});
