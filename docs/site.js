// A table that is wider than the page, and has sentences, becomes a list: see site.css.
const tables = [...document.querySelectorAll(".md-typeset table:not([class])")];

for (const table of tables) {
  const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    for (const [column, cell] of [...row.cells].entries()) {
      cell.dataset.column = names[column];
      if (cell.textContent.length > 40) cell.classList.add("sentence");
    }
  }
}

function arrange() {
  for (const table of tables) {
    delete table.dataset.asList;
    const room = table.closest("article").clientWidth;
    const isTooWide = Math.max(table.scrollWidth, table.offsetWidth) > room;
    if (isTooWide && table.querySelector(".sentence")) table.dataset.asList = "";
  }
}

arrange();
// The theme gives each table a box of its own, which has a margin.
addEventListener("load", arrange);
addEventListener("resize", arrange);
