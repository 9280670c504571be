/** Overrides single methods of an object. */

/** Returns an object with the methods of `replaced`; all other members, including the state, are those of `target`. */
export function overlay<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get: (object, name): unknown => {
      if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name);
      const value: unknown = Reflect.get(object, name, object);
      return typeof value === 'function' ? (...args: unknown[]): unknown => Reflect.apply(value, object, args) : value;
    },
  });
}
