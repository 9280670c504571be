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
  expect(faultOf('/dev/null/acme.pem')).toBe('not a directory');
  expect(fileFaultOf(new Error("Error: ENOENT: no such file or directory, open '/k'"))).toBe('there is no such file');
  expect(fileFaultOf(new Error('disk on fire'))).toBe('disk on fire');
});

it.each([
  ['ENOENT: no such file or directory, open', 'its folder does not exist'],
  ['EACCES: permission denied, open', 'this user may not write it'],
  ['EISDIR: illegal operation on a directory, open', 'it is a folder'],
  ['EROFS: read-only file system, open', 'read-only file system'],
])('says why a file cannot be written: %s', (words, fault) => {
  expect(fileFaultOf(new Error(`${words} '/k'`), 'output')).toBe(fault);
});
