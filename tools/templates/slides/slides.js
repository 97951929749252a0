// Every slide's content fits into its slide: what is too large is zoomed out, by the least that helps.
function fit(section) {
  const content = document.createElement("div");
  content.append(...section.childNodes);
  section.append(content);
  const room = section.clientHeight - content.offsetTop - 44;
  for (let zoom = 1; zoom > 0.2; zoom -= 0.04) {
    content.style.zoom = zoom;
    // Sizes inside a zoomed box count in its own pixels.
    const width = Math.max(...[content, ...content.querySelectorAll("*")].map((one) => one.scrollWidth));
    if (content.scrollHeight * zoom <= room && width <= content.clientWidth + 1) break;
  }
}

Reveal.initialize({
  width: 1280, height: 720, margin: 0, minScale: 0.1, maxScale: 4,
  center: false, hash: true, transition: "none", slideNumber: "c/t", controls: false, viewDistance: 99,
}).then(() => {
  const deck = document.querySelector(".reveal");
  deck.classList.add("measured");
  document.querySelectorAll(".slides > section > section").forEach(fit);
  deck.classList.remove("measured");
  document.documentElement.dataset.ready = "yes";
});
