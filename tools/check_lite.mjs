// Run chapters of _build/lite from end to end: the kernel of the browser and its Python, in node instead of a page.
//
//     node tools/check_lite.mjs [NAME ...]
//
// What costs time, WebAssembly, is the same in both; tools/check_lite.py looks at the page. A line for each chapter tells
// the seconds of processor until Python is ready and of all cells, and the memory. An error is a finding.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";

const lite = fileURLToPath(new URL("../_build/lite/", import.meta.url));
const kernel = `${lite}extensions/@jupyterlite/pyodide-kernel-extension/static/pypi/`;
const seconds = () => process.cpuUsage().user / 1e6;
performance.now = () => 1000 * seconds();  // Python's clock: a limit of seconds allows as much on a busy machine

async function start() {
  const { loadPyodide } = await import(`${lite}static/pyodide/pyodide.mjs`);
  const { packages } = JSON.parse(fs.readFileSync(`${lite}static/pyodide/pyodide-lock.json`));
  const said = { stdout: () => {}, stderr: () => {} };
  const python = await loadPyodide({ ...said, packages: Object.keys(packages), env: { HOME: "/home" } });
  for (const file of fs.readdirSync(kernel).filter((f) => /^(piplite|ipykernel|pyodide_kernel)/.test(f)))
    python.unpackArchive(new Uint8Array(fs.readFileSync(kernel + file)), "wheel");
  await python.runPythonAsync("import pyodide_kernel");
  return python.globals.get("pyodide_kernel").kernel_instance;
}

async function run(name) {
  const shell = await start();
  const ready = seconds(), found = [];
  const { cells } = JSON.parse(fs.readFileSync(`${lite}files/book/${name}.ipynb`));
  for (const [i, cell] of cells.entries()) {
    if (cell.cell_type != "code" || cell.metadata.tags?.includes("raises-exception")) continue;
    const answer = (await shell.run(cell.source)).toJs({ dict_converter: Object.fromEntries });
    if (answer.status != "error") continue;
    const where = answer.traceback.join("\n").replace(/\x1b\[[\d;]*m/g, "");
    found.push(`cell ${i + 1}: ${answer.ename}: ${answer.evalue}\n${where}`);
    break;  // what follows stands on this cell
  }
  const memory = process.memoryUsage().rss / 1e6;
  console.log(`${name}: ready in ${ready.toFixed(0)} s, cells in ${(seconds() - ready).toFixed(0)} s, ${memory.toFixed(0)} MB`);
  for (const text of found) console.log(`  ${text}`);
  process.exit(found.length);
}

const [one, ...more] = process.argv.slice(2);
if (one && !more.length) await run(one);
const every = fs.readdirSync(`${lite}files/book`).map((file) => file.replace(".ipynb", ""));
const failed = (one ? [one, ...more] : every).filter((name) => {
  const status = spawnSync(process.execPath, [process.argv[1], name], { stdio: "inherit" }).status;
  return status !== 0;  // a process of its own each: memory of WebAssembly is not given back
});
if (failed.length) console.log(`failed: ${failed.join(" ")}`);
process.exit(failed.length ? 1 : 0);
