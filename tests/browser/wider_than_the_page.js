// What is wider than the page, and not in a part that scrolls.
const scrolls = e => { for (let a = e.parentElement; a && a !== document.body; a = a.parentElement)
  if (getComputedStyle(a).overflowX !== "visible") return true; return false };
return document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter(
    e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e)).map(e => e.outerHTML)
