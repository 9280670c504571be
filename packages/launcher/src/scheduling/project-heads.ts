/** The first requests of each project in a class, and the one among them that is served next. */

import { projectOf } from '@nodepool/core';
import type { RequestEntry } from '@nodepool/store';
import { position } from './sorted-entries.js';
import type { ServiceOrder } from '../fairness/service-order.js';

export class ProjectHeads {
  private readonly byProject = new Map<string | null, RequestEntry[]>();
  private chosen: RequestEntry | undefined;

  constructor(
    private readonly order: Pick<ServiceOrder, 'compare'>,
    entries: Iterable<RequestEntry> = [],
  ) {
    for (const entry of entries) this.add(entry);
  }

  /** Stays the same until a request is added or removed, although the use of the projects changes meanwhile. */
  get first(): RequestEntry | undefined {
    return this.chosen;
  }

  add(entry: RequestEntry): void {
    const project = projectOf(entry.request);
    const entries = this.byProject.get(project) ?? [];
    this.byProject.set(project, entries);
    const at = position(entries, entry);
    entries.splice(at, 0, entry);
    if (at === 0 && (this.chosen === undefined || this.isBefore(entry, this.chosen))) this.chosen = entry;
  }

  remove(entry: RequestEntry): void {
    const project = projectOf(entry.request);
    const entries = this.byProject.get(project);
    if (entries === undefined) return;
    entries.splice(position(entries, entry), 1);
    if (entries.length === 0) this.byProject.delete(project);
    if (entry === this.chosen) this.choose();
  }

  private choose(): void {
    this.chosen = undefined;
    for (const [head] of this.byProject.values()) {
      if (head !== undefined && (this.chosen === undefined || this.isBefore(head, this.chosen))) this.chosen = head;
    }
  }

  private isBefore({ request: a }: RequestEntry, { request: b }: RequestEntry): boolean {
    return this.order.compare(a, b) < 0;
  }
}
