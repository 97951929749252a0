// For each slide: what of it lies outside the window, and the size of its smallest letters.
return Reveal.getSlides().map((slide, at) => {
  const {h, v} = Reveal.getIndices(slide)
  Reveal.slide(h, v)
  const hidden = "style, .notes, details:not([open]) > :not(summary)"
  const inside = [...slide.querySelectorAll("*")].filter(one => !one.closest(hidden))
  const outside = inside.filter(one => {
    const box = one.getBoundingClientRect()
    const cut = box.width && (box.left < -1 || box.top < -1
      || box.right > innerWidth + 1 || box.bottom > innerHeight + 1)
    return cut || (one.clientWidth && getComputedStyle(one).overflowX !== "visible"
      && one.scrollWidth > one.clientWidth + 1)
  })
  const letters = inside.filter(one => one.textContent.trim() && !one.closest("svg")).map(
    one => parseFloat(getComputedStyle(one).fontSize) * (one.currentCSSZoom || 1))
  return {at, heading: slide.querySelector("h1, h2").textContent,
    empty: !slide.querySelector("p, ul, table, pre, .jp-OutputArea-output"),
    outside: outside.map(one => one.tagName + " " + one.textContent.slice(0, 60)),
    smallest: Math.min(...letters)}
})
