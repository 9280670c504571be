import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, it } from '@jest/globals';
import { fileFaultOf } from '@nodepool/core';

it('says why a file cannot be read without its path, which the message has already', () => {
  const faultOf = (file: string): string => {
    try {
      readFileSync(file);
      return '';
    } catch (error) {
      return fileFaultOf(error);
    }
  };
  expect(faultOf('/nonexistent/acme.pem')).toBe('there is no such file');
  expect(faultOf(tmpdir())).toBe('it is a folder');
  expect(fileFaultOf(Object.assign(new Error("EACCES, open '/k'"), { code: 'EACCES' }))).toBe(
    'this user may not read it',
  );
  expect(fileFaultOf(new Error('disk on fire'))).toBe('disk on fire');
});
