/** A framework of `@nodepool/core`; also the name of the folder with its part of the template. */
export type Framework = 'simple' | 'state-machine';

/** Use cases of each framework, in the order of recommendation. */
export const FRAMEWORKS: Readonly<Record<Framework, string>> = {
  simple: 'for clouds that create and delete an instance with one call each',
  'state-machine': 'for clouds that need several calls per instance',
};

export function isFramework(text: string): text is Framework {
  return Object.hasOwn(FRAMEWORKS, text);
}
