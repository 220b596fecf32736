"use strict";
(() => {
  const root = document.documentElement, tip = document.getElementById("tip");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.getElementById("theme")?.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });
  if (location.hash === "#dark" || location.hash === "#light") root.dataset.theme = location.hash.slice(1);
  // Paper unfolds nothing: what is folded is opened for it, and closed again.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
  // A moment in a chart leads to what took the time in it.
  addEventListener("click", event => {
    const name = event.target.closest?.("[data-explains]")?.dataset.explains;
    const found = name && document.getElementById(name);
    if (!found) return;
    document.querySelectorAll(".chosen").forEach(each => each.classList.remove("chosen"));
    found.classList.add("chosen");
    found.closest("details").open = true;
    found.scrollIntoView({ block: "nearest" });
    found.nextElementSibling.scrollIntoView({ block: "nearest" });
  });
  addEventListener("pointermove", event => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect(), edge = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, edge - box.width - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - box.height - 12) + "px";
  });
})();
