// Searches headings. Without scripts, only the search is missing.
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
      .map(([heading, page, path, anchor]) => ({ heading, page, href: root + path + (anchor && '#' + anchor) }))
      .filter(({ heading, page }) => {
        const all = `${heading} ${page}`.toLowerCase();
        return words.every((word) => all.includes(word));
      })
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
    if (found.length === 0 && !list.hidden) list.textContent = 'Nothing has such a heading.';
  }

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
