/** The page of the control interface, which shows scale sets, jobs, runners and events, and queues jobs. */

/** Columns by view: the member of each item and its heading. */
const COLUMNS = {
  'scale-sets': ['name', 'scope', 'labels', 'session', 'statistics'],
  jobs: ['number', 'repository', 'labels', 'state', 'scaleSet', 'runner', 'result'],
  runners: ['id', 'name', 'scaleSet', 'isOnline', 'job'],
  events: ['time', 'text'],
};

export const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Simulated GitHub</title>
<style>
  body { font-family: sans-serif; margin: 2em; }
  table { border-collapse: collapse; margin-bottom: 2em; }
  th, td { border: 1px solid #bbb; padding: 0.2em 0.6em; text-align: left; vertical-align: top; }
</style>
<h1>Simulated GitHub</h1>
<form id="queue">
  <label>Repository <input name="repository" value="acme/app" required></label>
  <label>Labels <input name="labels" value="linux" required></label>
  <label>Duration (s) <input name="seconds" type="number" min="0" value="10"></label>
  <label>Jobs <input name="count" type="number" min="1" max="1000" value="1"></label>
  <button>Queue</button> <output id="answer"></output>
</form>
<main></main>
<script>
  const columns = ${JSON.stringify(COLUMNS)};
  const text = (value) => value === null || value === undefined ? '' : typeof value !== 'object' ? String(value)
    : Array.isArray(value) ? value.map(text).join(', ')
    : Object.entries(value).map(([name, each]) => name + ': ' + text(each)).join('\\n');
  const row = (cells, tag) => {
    const line = document.createElement('tr');
    for (const cell of cells) {
      const item = document.createElement(tag);
      item.textContent = text(cell);
      item.style.whiteSpace = 'pre-line';
      line.append(item);
    }
    return line;
  };
  const show = async () => {
    const tables = await Promise.all(Object.entries(columns).map(async ([view, names]) => {
      const items = (await (await fetch('/' + view)).json()).slice(-100).reverse();
      const heading = document.createElement('h2');
      heading.textContent = view;
      const table = document.createElement('table');
      table.append(row(names, 'th'), ...items.map((item) => row(names.map((name) => item[name]), 'td')));
      return [heading, table];
    }));
    document.querySelector('main').replaceChildren(...tables.flat());
  };
  document.querySelector('#queue').addEventListener('submit', async (event) => {
    event.preventDefault();
    const { repository, labels, seconds, count } = Object.fromEntries(new FormData(event.target));
    const body = { repository, labels: labels.split(/[ ,]+/), durationMs: seconds * 1000, count: Number(count) };
    const answer = await fetch('/jobs', { method: 'POST', body: JSON.stringify(body) });
    document.querySelector('#answer').textContent = await answer.text();
    await show();
  });
  const refresh = () => show().catch(() => undefined).then(() => setTimeout(refresh, 1000));
  refresh();
</script>
</html>
`;
