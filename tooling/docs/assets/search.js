// Searches headings and the words of their sections, and switches versions. Without scripts, only these are missing.
(() => {
  const root = document.currentScript.dataset.root;
  const input = document.getElementById('search');
  const list = document.getElementById('found');
  const MOST = 12;

  // On a phone, the list of pages would cover the page.
  if (window.matchMedia('(max-width: 50rem)').matches) document.querySelector('nav details').open = false;

  function find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    return window.searchIndex
      .map(([heading, page, path, anchor, text]) => {
        const title = `${heading} ${page}`.toLowerCase();
        // A word counts more in a heading than in its section, and most at the beginning of the heading.
        const scores = words.map((word) =>
          title.startsWith(word) ? 4 : title.includes(word) ? 2 : text.includes(word) ? 1 : 0,
        );
        const score = scores.includes(0) ? 0 : scores.reduce((sum, each) => sum + each, 0);
        return { heading, page, href: root + path + (anchor && '#' + anchor), score };
      })
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, MOST);
  }

  function show() {
    const found = find(input.value);
    list.hidden = input.value.trim() === '';
    list.replaceChildren(
      ...found.map(({ heading, page, href }) => {
        const item = document.createElement('li');
        const link = document.createElement('a');
        const where = document.createElement('small');
        link.href = href;
        link.append(heading);
        where.append(page);
        link.append(where);
        item.append(link);
        return item;
      }),
    );
    if (found.length === 0 && !list.hidden) list.textContent = 'No section has these words.';
  }

  // A site of several versions has a folder for each, and beside them `versions.js`, which sets
  // `window.versions` to a list of {name, folder}, the newest first.
  function offerVersions() {
    const switcher = document.getElementById('versions');
    const here = new URL(root + 'index.html', location.href);
    const folder = here.pathname.split('/').at(-2);
    const rest = location.href.slice(here.href.length - 'index.html'.length);
    switcher.replaceChildren(
      ...window.versions.map((each) => new Option(each.name, each.folder, false, each.folder === folder)),
    );
    switcher.hidden = window.versions.length < 2;
    switcher.addEventListener('change', async () => {
      const first = new URL(`../${switcher.value}/`, here);
      // Another version may lack this page.
      const found = await fetch(new URL(rest, first), { method: 'HEAD' }).then(
        ({ ok }) => ok,
        () => false,
      );
      location.href = new URL(found ? rest : 'index.html', first).href;
    });
  }

  const versions = document.createElement('script');
  versions.src = `${root}../versions.js`;
  versions.addEventListener('load', offerVersions);
  document.head.append(versions);

  input.hidden = false;
  input.addEventListener('input', show);
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') list.hidden = true;
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
  });
  document.addEventListener('click', (event) => {
    if (!list.contains(event.target) && event.target !== input) list.hidden = true;
  });
})();
