/** The znodes of a tree cache, with their children. */

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

const NO_CHILDREN: ReadonlySet<string> = new Set();

export class TreeNodes {
  private readonly nodes = new Map<string, CachedNode>();
  private readonly childNames = new Map<string, Set<string>>();

  get(path: string): CachedNode | undefined {
    return this.nodes.get(path);
  }

  children(path: string): ReadonlySet<string> {
    return this.childNames.get(path) ?? NO_CHILDREN;
  }

  put(node: CachedNode): void {
    const { path } = node;
    const known = this.nodes.has(path);
    this.nodes.set(path, node);
    const parent = known ? undefined : parentPath(path);
    if (parent === undefined) return;
    const names = this.childNames.get(parent);
    if (names === undefined) this.childNames.set(parent, new Set([nameOf(path)]));
    else names.add(nameOf(path));
  }

  /** Removes a znode and its descendants, children first, and calls `onRemoved` for each. */
  remove(path: string, onRemoved: (node: CachedNode) => void): void {
    const names = this.childNames.get(path);
    if (names !== undefined) for (const name of [...names]) this.remove(childPath(path, name), onRemoved);
    const node = this.nodes.get(path);
    if (node === undefined) return;
    this.nodes.delete(path);
    const parent = parentPath(path);
    const siblings = parent === undefined ? undefined : this.childNames.get(parent);
    if (parent !== undefined && siblings !== undefined) {
      siblings.delete(nameOf(path));
      if (siblings.size === 0) this.childNames.delete(parent);
    }
    onRemoved(node);
  }
}

/** Returns the path of a child. */
export function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
