/**
 * The order of service under fair shares, as pure functions. The tenant furthest below its share comes first, then the
 * priorities decide among its requests, and the project furthest below its share among requests of equal priority.
 * docs/limits-and-waiting.md explains it.
 */

import { compareRequests, priorityOf, projectOf, type NodeRequest } from '@nodepool/core';

/** The use of a tenant, or of a project within its tenant, against its share. */
export interface Standing {
  readonly weight: number;
  /** Part of the capacity that it uses of its dominant resource, now and in the past; 0.12 stands for 12 %. */
  readonly used: number;
  /** Part of the capacity that it is entitled to while all active tenants want more. */
  readonly entitled: number;
}

/** The facts that the order depends on. */
export interface OrderFacts {
  tenant(tenant: string | null): Standing;
  project(tenant: string | null, project: string | null): Standing;
  /** Returns the time (ms since the epoch) since which the request goes first because it starved; else undefined. */
  senior(request: NodeRequest): number | undefined;
  /** Part of the capacity that one more node uses, to foresee the order of requests that are served one by one. */
  readonly perNode: number;
}

/** The place of a request in the order of service. */
export interface Place {
  readonly request: NodeRequest;
  /** 1 for the first one. */
  readonly place: number;
  /** e.g. `3rd: tenant b has 12 % of 25 %`. */
  readonly reason: string;
}

export function isBelowShare({ used, entitled }: Standing): boolean {
  return used < entitled;
}

/** Compares two requests by the order of service. */
export function compareFair(a: NodeRequest, b: NodeRequest, facts: OrderFacts): number {
  if (a.tenant_name === b.tenant_name) return compareWithinTenant(a, b, facts);
  const [seniorA, seniorB] = [facts.senior(a) ?? Infinity, facts.senior(b) ?? Infinity];
  if (seniorA !== seniorB) return seniorA - seniorB;
  return levelOf(facts.tenant(a.tenant_name)) - levelOf(facts.tenant(b.tenant_name)) || compareRequests(a, b);
}

function compareWithinTenant(a: NodeRequest, b: NodeRequest, facts: OrderFacts): number {
  const [first, second] = [priorityOf(a.id), priorityOf(b.id)];
  if (first !== second) return first < second ? -1 : 1;
  const [projectA, projectB] = [projectOf(a), projectOf(b)];
  if (projectA === projectB) return compareRequests(a, b);
  const { tenant_name: tenant } = a;
  const difference = levelOf(facts.project(tenant, projectA)) - levelOf(facts.project(tenant, projectB));
  return difference || compareRequests(a, b);
}

/** Returns the use per weight. Tenants and projects are compared by it. */
function levelOf({ used, weight }: Standing): number {
  return used / weight;
}

/** Returns the order in which the requests are served if capacity becomes free node by node, with the reasons. */
export function fairOrder(requests: readonly NodeRequest[], facts: OrderFacts): readonly Place[] {
  const step = ({ node_types: labels }: NodeRequest): number => labels.length * facts.perNode;
  const seniors: NodeRequest[] = [];
  const tenants = [...groupsBy(requests, ({ tenant_name: tenant }) => tenant)].map(([tenant, theirs]) => {
    const items = orderOfTenant(tenant, theirs, facts, step);
    const [first] = items;
    // A senior request does not precede those of its own tenant that have a better priority.
    const isSenior = first !== undefined && facts.senior(first) !== undefined;
    if (isSenior) seniors.push(first);
    return { standing: facts.tenant(tenant), items: isSenior ? items.slice(1) : items };
  });
  seniors.sort((a, b) => compareFair(a, b, facts));
  const turns = [
    ...seniors.map((request) => ({ item: request, used: facts.tenant(request.tenant_name).used, senior: true })),
    ...interleave(tenants, step).map((turn) => ({ ...turn, senior: false })),
  ];
  return turns.map(({ item: request, used, senior }, index) => {
    const { entitled } = facts.tenant(request.tenant_name);
    const share = `${nameOf(request.tenant_name)} has ${percent(used)} of ${percent(entitled)}`;
    const reason = `${ordinal(index + 1)}: ${share}${senior ? ', and its request has waited too long' : ''}`;
    return { request, place: index + 1, reason };
  });
}

function orderOfTenant(
  tenant: string | null,
  requests: readonly NodeRequest[],
  facts: OrderFacts,
  step: (request: NodeRequest) => number,
): readonly NodeRequest[] {
  const byPriority = [...groupsBy(requests, ({ id }) => priorityOf(id))].sort(([a], [b]) => (a < b ? -1 : 1));
  return byPriority.flatMap(([, equal]) => {
    const projects = [...groupsBy(equal, projectOf)].map(([project, theirs]) => ({
      standing: facts.project(tenant, project),
      items: [...theirs].sort(compareRequests),
    }));
    return interleave(projects, step).map(({ item }) => item);
  });
}

/** Requests of one tenant or project in their order. */
interface Group {
  readonly standing: Standing;
  readonly items: readonly NodeRequest[];
}

/** Merges the groups: next is the group with the least use per weight, including its earlier requests. */
function interleave(
  groups: readonly Group[],
  step: (request: NodeRequest) => number,
): { readonly item: NodeRequest; readonly used: number }[] {
  const [only] = groups;
  if (groups.length === 1 && only !== undefined) {
    let { used } = only.standing;
    return only.items.map((item) => {
      const before = used;
      used += step(item);
      return { item, used: before };
    });
  }
  const heap = new TurnHeap();
  for (const { items, standing } of groups)
    heap.push({ items, index: 0, used: standing.used, weight: standing.weight });
  const merged: { item: NodeRequest; used: number }[] = [];
  for (let turn = heap.pop(); turn !== undefined; turn = heap.pop()) {
    const item = turn.items[turn.index];
    if (item === undefined) continue;
    merged.push({ item, used: turn.used });
    heap.push({ ...turn, index: turn.index + 1, used: turn.used + step(item) });
  }
  return merged;
}

interface Turn {
  readonly items: readonly NodeRequest[];
  readonly index: number;
  readonly used: number;
  readonly weight: number;
}

/** A binary heap; its first element is the group whose turn is next. */
class TurnHeap {
  private readonly turns: Turn[] = [];

  push(turn: Turn): void {
    if (turn.index >= turn.items.length) return;
    this.turns.push(turn);
    let at = this.turns.length - 1;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!this.swapUnlessOrdered(parent, at)) return;
      at = parent;
    }
  }

  pop(): Turn | undefined {
    const { turns } = this;
    const [first] = turns;
    const last = turns.pop();
    if (last === undefined || turns.length === 0) return first;
    turns[0] = last;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      const least = right < turns.length && this.isBefore(right, left) ? right : left;
      if (least >= turns.length || !this.swapUnlessOrdered(at, least)) return first;
      at = least;
    }
  }

  private swapUnlessOrdered(upper: number, lower: number): boolean {
    if (!this.isBefore(lower, upper)) return false;
    const { [upper]: a, [lower]: b } = this.turns;
    if (a !== undefined && b !== undefined) [this.turns[upper], this.turns[lower]] = [b, a];
    return true;
  }

  private isBefore(one: number, other: number): boolean {
    const { [one]: a, [other]: b } = this.turns;
    const [itemA, itemB] = [a?.items[a.index], b?.items[b.index]];
    if (a === undefined || b === undefined || itemA === undefined || itemB === undefined) return false;
    return (a.used / a.weight - b.used / b.weight || compareRequests(itemA, itemB)) < 0;
  }
}

function groupsBy<K>(requests: readonly NodeRequest[], keyOf: (request: NodeRequest) => K): Map<K, NodeRequest[]> {
  const groups = new Map<K, NodeRequest[]>();
  for (const request of requests) {
    const key = keyOf(request);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [request]);
    else group.push(request);
  }
  return groups;
}

function nameOf(tenant: string | null): string {
  return tenant === null ? 'the group without a tenant' : `tenant ${tenant}`;
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function ordinal(place: number): string {
  const [tens, ones] = [place % 100, place % 10];
  const isTeen = tens >= 11 && tens <= 13;
  return `${place}${isTeen ? 'th' : ones === 1 ? 'st' : ones === 2 ? 'nd' : ones === 3 ? 'rd' : 'th'}`;
}
