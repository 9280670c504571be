/** The order in which queued request classes are offered to pools. */

import { compareClasses, type RequestClass } from './open-requests.js';

export interface ClassLine {
  /** Removes and returns the class that is next. */
  shift(): RequestClass | undefined;
  enter(requestClass: RequestClass): void;
  /** Returns false if the class was not in line. */
  leave(requestClass: RequestClass): boolean;
  /** Replaces all classes in line. */
  reset(classes: Iterable<RequestClass>): void;
}

/** Classes sorted by the priorities of their first requests. */
export class PriorityLine implements ClassLine {
  private classes: RequestClass[] = [];

  shift(): RequestClass | undefined {
    return this.classes.shift();
  }

  enter(requestClass: RequestClass): void {
    insert(this.classes, requestClass, byPriority);
  }

  leave(requestClass: RequestClass): boolean {
    return remove(this.classes, requestClass);
  }

  reset(classes: Iterable<RequestClass>): void {
    this.classes = [...classes].sort(byPriority);
  }
}

type Compare = (a: RequestClass, b: RequestClass) => number;

const byPriority: Compare = (a, b) => compareClasses(a, b);

/** Inserts the class after those that do not follow it. */
export function insert(classes: RequestClass[], requestClass: RequestClass, compare: Compare): void {
  let low = 0;
  let high = classes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = classes[middle];
    if (other !== undefined && compare(other, requestClass) < 0) low = middle + 1;
    else high = middle;
  }
  classes.splice(low, 0, requestClass);
}

export function remove(classes: RequestClass[], requestClass: RequestClass): boolean {
  const index = classes.indexOf(requestClass);
  if (index >= 0) classes.splice(index, 1);
  return index >= 0;
}
