/** Names of drivers. */

import { describe, expect, it } from '@jest/globals';
import { namesOf } from '../src/index.js';
import { renamed } from '../src/names.js';

describe('the names of a driver', () => {
  it('are derived from the name in configurations', () => {
    expect(namesOf('star-dust-2')).toEqual({
      driver: 'star-dust-2',
      pascal: 'StarDust2',
      camel: 'starDust2',
      package: 'nodepool-driver-star-dust-2',
    });
  });

  it('can have 60 characters', () => {
    expect(namesOf('a'.repeat(60)).driver).toHaveLength(60);
  });

  it('can include a package with a scope', () => {
    expect(namesOf('x', '@acme/nodepool-driver-x').package).toBe('@acme/nodepool-driver-x');
  });

  it.each(['', 'Star', '2x', 'a--b', '-a', 'a-', 'a/b', '../x', 'a b', 'a'.repeat(61), 'ä'])('cannot be %j', (name) => {
    expect(() => namesOf(name)).toThrow(RangeError);
  });

  it.each([
    ['on', 'YAML does not read it as a text'],
    ['null', 'YAML does not read it as a text'],
    ['state-machine', '@nodepool/core uses it'],
  ])('cannot be %s, since the driver would not work', (name, reason) => {
    expect(() => namesOf(name)).toThrow(reason);
  });

  it.each(['', 'Big', '@acme', '@acme/', '../x', 'a b', '.x', 'a'.repeat(215)])(
    'cannot have the package %j',
    (name) => {
      expect(() => namesOf('x', name)).toThrow(RangeError);
    },
  );
});

describe('a renamed template', () => {
  const template = 'nodepool-driver-mycloud: class MyCloudAdapter, myCloudDriver(), driver: mycloud';

  it.each([
    ['mycloud-2', undefined, 'nodepool-driver-mycloud-2: class Mycloud2Adapter, mycloud2Driver(), driver: mycloud-2'],
    [
      'my-mycloud',
      undefined,
      'nodepool-driver-my-mycloud: class MyMycloudAdapter, myMycloudDriver(), driver: my-mycloud',
    ],
    [
      'acme',
      '@acme/nodepool-driver-mycloud',
      '@acme/nodepool-driver-mycloud: class AcmeAdapter, acmeDriver(), driver: acme',
    ],
  ])('has the given names for %s in the package %s', (name, packageName, expected) => {
    expect(renamed(template, namesOf(name, packageName))).toBe(expected);
  });
});
