/** Tags encoded as labels of Google Cloud. */

import { describe, expect, it } from '@jest/globals';
import { fitsLabel, fromLabel, toLabel } from '../src/labels.js';

describe('a tag in a label', () => {
  it.each(['', '0000000001', 'gcloud-provider', 'Acme North_1', 'é_ü', '__', '_41', 'a/b:c.d'])(
    '%j is unchanged after encoding and decoding',
    (value) => {
      expect(toLabel(value)).toMatch(/^[a-z0-9_-]*$/);
      expect(fromLabel(toLabel(value))).toBe(value);
    },
  );

  it('of another owner is decoded unchanged', () => {
    expect(fromLabel('my_label')).toBe('my_label');
  });

  it('fits if it has at most 63 encoded characters', () => {
    expect(fitsLabel('x'.repeat(63))).toBe(true);
    expect(fitsLabel('X'.repeat(22))).toBe(false);
  });
});
