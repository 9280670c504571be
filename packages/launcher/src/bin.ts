#!/usr/bin/env node
/** The program `nodepool-launcher`. */
import { main } from './main.js';

void main(process.argv).then((code) => {
  process.exitCode = code;
});
