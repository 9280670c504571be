/** An object seen through a pane: some methods are replaced, all others are its own. */

/** `replaced` takes over the methods that it has; the rest, with its state, stays the target's. */
export function overlay<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get: (object, name): unknown => {
      if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name);
      const value: unknown = Reflect.get(object, name, object);
      return typeof value === 'function' ? (...args: unknown[]): unknown => Reflect.apply(value, object, args) : value;
    },
  });
}
