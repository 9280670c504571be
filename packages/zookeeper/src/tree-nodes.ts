import type { Stat } from './api.js';
import { parentPath } from './client/paths.js';
import type { TreeNode } from './recipes-api.js';

/** A cached znode, with the generation of the last load that confirmed it. */
export class CachedNode implements TreeNode {
  constructor(
    readonly path: string,
    readonly data: Uint8Array,
    readonly stat: Stat,
    public generation: number,
  ) {}
}

const NO_CHILDREN: readonly string[] = [];

export class TreeNodes {
  private readonly nodes = new Map<string, CachedNode>();
  readonly byPath: ReadonlyMap<string, CachedNode> = this.nodes;
  /** The paths of the children, by path. Most znodes have at most one, for which a set would take 150 bytes. */
  private readonly children = new Map<string, string | Set<string>>();

  /** `onRemoved` is called for each removed znode. */
  constructor(private readonly onRemoved: (node: CachedNode) => void) {}

  /** Returns the paths of the present children; later changes do not affect the result. */
  childrenOf(path: string): readonly string[] {
    const children = this.children.get(path);
    if (children === undefined) return NO_CHILDREN;
    return typeof children === 'string' ? [children] : [...children];
  }

  /** Adds a znode, or replaces `before`, the present one. */
  put(node: CachedNode, before: CachedNode | undefined): void {
    const { path } = node;
    this.nodes.set(path, node);
    const parent = before === undefined ? parentPath(path) : undefined;
    if (parent === undefined) return;
    const siblings = this.children.get(parent);
    // The parent's own text, because a part of this path would take memory beside it.
    if (siblings === undefined) this.children.set(this.nodes.get(parent)?.path ?? parent, path);
    else if (typeof siblings === 'string') this.children.set(parent, new Set([siblings, path]));
    else siblings.add(path);
  }

  /** Removes a znode and its descendants, children first. */
  remove(path: string): void {
    if (this.children.has(path)) for (const child of this.childrenOf(path)) this.remove(child);
    const node = this.nodes.get(path);
    if (node !== undefined) this.removeOne(node);
  }

  /** Removes the znodes of earlier generations. */
  removeUnconfirmed(generation: number): void {
    for (const node of this.nodes.values()) if (node.generation !== generation) this.removeOne(node);
  }

  private removeOne(node: CachedNode): void {
    const { path } = node;
    this.nodes.delete(path);
    const parent = parentPath(path);
    if (parent !== undefined) {
      const siblings = this.children.get(parent);
      if (typeof siblings === 'object' && siblings.size > 1) siblings.delete(path);
      else this.children.delete(parent);
    }
    this.onRemoved(node);
  }
}

export function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
