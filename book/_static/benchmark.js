// Sort and filter the table of the benchmark, by mouse or keys. Without this script the table is there, in its order.
(() => {
  const box = document.querySelector(".benchmark");
  if (!box) return;
  const body = box.querySelector("tbody");
  const heads = [...box.querySelectorAll("thead th")];
  const rows = [...body.rows];
  const names = heads.map((head) => head.textContent.trim());
  const text = (row, i) => row.cells[i].textContent.trim();
  const compare = (a, b) => {
    const numbers = a !== "" && b !== "" && !isNaN(a) && !isNaN(b);
    return numbers ? a - b : a.localeCompare(b);
  };

  // --- filters: a choice of the values of each of these columns ---
  const form = document.createElement("form");
  form.className = "benchmark-filters";
  const count = document.createElement("output");
  const choices = ["data set", "kind", "size", "classes", "method"].map((name) => {
    const i = names.indexOf(name);
    const label = document.createElement("label");
    const select = document.createElement("select");
    select.name = name;
    select.add(new Option("all", ""));
    const values = new Set(rows.map((row) => text(row, i)));
    for (const value of [...values].sort(compare)) select.add(new Option(value, value));
    label.append(`${name} `, select);
    form.append(label);
    return { i, select };
  });
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !choices.every(
        ({ i, select }) => !select.value || text(row, i) === select.value
      );
      shown += !row.hidden;
    }
    count.value = `${shown} of ${rows.length} rows`;
  };
  const reset = document.createElement("button");
  reset.type = "reset";
  reset.textContent = "show all";
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter)); // after the selects are reset
  form.append(reset, count);
  box.before(form);

  // --- order: a button in each header; empty cells stay last ---
  const sort = (i) => {
    const down = heads[i].getAttribute("aria-sort") === "descending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[i].setAttribute("aria-sort", down ? "ascending" : "descending");
    const sign = down ? 1 : -1;
    rows.sort((one, two) => {
      const [a, b] = [text(one, i), text(two, i)];
      return (a === "") - (b === "") || sign * compare(a, b);
    });
    body.append(...rows);
  };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = names[i];
    button.addEventListener("click", () => sort(i));
    head.replaceChildren(button);
  });
  filter();
})();
