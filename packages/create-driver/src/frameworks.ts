/** The frameworks that a driver can be based on. */

/** A framework of `@nodepool/core`; also the name of the folder with its part of the template. */
export type Framework = 'simple' | 'state-machine';

/** Use cases of each framework, in the order of recommendation. */
export const FRAMEWORKS: Readonly<Record<Framework, string>> = {
  'state-machine':
    'an instance takes several calls, or thousands are made at once: you write what happens step by step',
  simple: 'an instance is made by one call and deleted by one: you write create, delete and list',
};

export function isFramework(text: string): text is Framework {
  return Object.hasOwn(FRAMEWORKS, text);
}
