"use strict";
(() => {
  const data = JSON.parse(document.getElementById("points")?.textContent ?? "null");
  const tip = document.getElementById("tip");
  const only = document.getElementById("only");
  const panels = [...document.querySelectorAll("svg.points")];
  const rows = document.querySelector("#rows tbody");

  const told = (r) => {
    const [code, name, sure] = data.points[r];
    const kind = data.classes[code];
    if (name === undefined) return `source row of class ${kind}`;
    return `${name}: ${kind}` + (sure === null ? "" : `, confidence ${sure.toFixed(2)}`);
  };
  const choose = (r) => {
    for (const panel of panels)
      for (const mark of panel.querySelectorAll(".p"))
        mark.classList.toggle("chosen", mark.dataset.r === r);
    tip.textContent = r === null ? "" : told(r);
    if (!rows) return;
    for (const line of rows.rows) {
      const link = line.querySelector("a");
      line.classList.toggle("chosen", r !== null && link && link.hash === `#p${r}`);
    }
  };
  for (const panel of panels)
    for (const happening of ["pointerover", "click"])
      panel.addEventListener(happening, (event) => {
        const mark = event.target.closest(".p");
        if (mark) choose(mark.dataset.r);
      });
  const follow = () => {
    const mark = location.hash.startsWith("#p") && document.getElementById(location.hash.slice(1));
    if (mark && mark.dataset.r) choose(mark.dataset.r);
    const place = location.hash && document.getElementById(location.hash.slice(1));
    const folded = place && place.closest("details");
    if (folded) folded.open = true;
  };
  window.addEventListener("hashchange", follow);
  follow();
  only?.addEventListener("change", () => {
    for (const panel of panels)
      for (const mark of panel.querySelectorAll(".p"))
        mark.classList.toggle(
          "dim", only.value !== "" && data.points[mark.dataset.r][0] !== Number(only.value));
  });
  document.querySelector(".controls")?.addEventListener("submit", (event) => event.preventDefault());

  if (rows) {
    const search = document.getElementById("search");
    search?.addEventListener("input", () => {
      const wanted = search.value.trim().toLowerCase();
      for (const line of rows.rows) line.hidden = !line.textContent.toLowerCase().includes(wanted);
    });
    const heads = [...document.querySelectorAll("#rows thead th")];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
        const lines = [...rows.rows].sort((a, b) => turn * a.cells[column].textContent.localeCompare(
          b.cells[column].textContent, undefined, { numeric: true }));
        rows.append(...lines);
      });
    });
  }
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
})();
