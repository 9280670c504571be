#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { setFlagsFromString } from 'node:v8';
import { main } from './main.js';

// A daemon that is idle most of the time: garbage is collected sooner, instead of letting a burst double its memory.
setFlagsFromString('--optimize-for-size');

void main(process.argv).then((code) => {
  process.exitCode = code;
});
