#!/usr/bin/env node
/** The program `nodepool-builder`. */
import { main } from './main.js';

void main(process.argv).then((code) => {
  process.exitCode = code;
});
