/** A first-in, first-out queue with amortised constant time per operation. */

const COMPACT_AT = 64;

export class Fifo<T> {
  /** Number of items. Only the queue changes it. */
  size = 0;
  /** The oldest item; undefined if the queue is empty. Only the queue changes it. */
  first: T | undefined;
  /** The removed items, which are undefined, and then the items of the queue. */
  private items: (T | undefined)[] = [];
  private head = 0;

  push(item: T): void {
    this.items.push(item);
    if (this.size === 0) this.first = item;
    this.size++;
  }

  shift(): T | undefined {
    const { first } = this;
    if (this.size === 0) return undefined;
    this.size--;
    this.items[this.head] = undefined;
    this.head++;
    if (this.head >= COMPACT_AT && this.head >= this.size) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    this.first = this.size === 0 ? undefined : this.items[this.head];
    return first;
  }

  /** Removes and returns all items, in order. */
  takeAll(): T[] {
    const rest = this.items.slice(this.head) as T[];
    this.items = [];
    this.head = 0;
    this.size = 0;
    this.first = undefined;
    return rest;
  }
}
