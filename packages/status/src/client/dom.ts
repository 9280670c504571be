/**
 * Creates elements from text that is never parsed as HTML, and updates the page with minimal changes, so that the focus
 * and the selection are preserved.
 */

export type Child = Node | string | undefined;

/** Returns a new element; undefined attributes are omitted. */
export function h(
  tag: string,
  attributes: Readonly<Record<string, string | number | undefined>> = {},
  ...children: readonly Child[]
): HTMLElement {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Returns a new SVG element; undefined attributes are omitted. */
export function svg(
  tag: string,
  attributes: Readonly<Record<string, string | number | undefined>> = {},
  ...children: readonly Child[]
): SVGElement {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

function fill(
  element: Element,
  attributes: Readonly<Record<string, string | number | undefined>>,
  children: readonly Child[],
): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== undefined) element.append(child);
}

/** Makes the children of the parent equal to the given ones, with as few changes as possible. */
export function show(parent: Element, children: readonly Child[]): void {
  const wanted = children.filter((child) => child !== undefined);
  patchChildren(
    parent,
    wanted.map((child) => (typeof child === 'string' ? document.createTextNode(child) : child)),
  );
}

/** Returns the key that identifies a node across updates. */
function keyOf(node: Node): string {
  if (!(node instanceof Element)) return node.nodeName;
  return `${node.nodeName} ${node.getAttribute('data-key') ?? ''}`;
}

function patchChildren(parent: Element, wanted: readonly Node[]): void {
  const keyed = new Map<string, ChildNode[]>();
  for (const child of parent.childNodes) {
    const key = keyOf(child);
    const same = keyed.get(key);
    if (same === undefined) keyed.set(key, [child]);
    else same.push(child);
  }
  let next = parent.firstChild;
  for (const node of wanted) {
    const old = keyed.get(keyOf(node))?.shift();
    if (old === undefined) {
      parent.insertBefore(node, next);
      continue;
    }
    if (old === next) next = next.nextSibling;
    else parent.insertBefore(old, next);
    patch(old, node);
  }
  for (const left of [...keyed.values()].flat()) left.remove();
}

function patch(old: ChildNode, wanted: Node): void {
  if (!(old instanceof Element) || !(wanted instanceof Element)) {
    if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  patchChildren(old, [...wanted.childNodes]);
}
