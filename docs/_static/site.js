// Names for controls that the theme and the gallery leave without one, and a role that is current.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("nav summary")) {
    const link = summary.closest("li")?.querySelector("a");
    summary.setAttribute("aria-label", `Pages of ${link?.textContent ?? "this section"}`);
  }
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) {
    entry.setAttribute("role", "listitem");
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent);
  }
});
