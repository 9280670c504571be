#!/usr/bin/env node
/** The program `nodepool-github`. */
import { createRequire } from 'node:module';
import { startProgram } from '@nodepool/daemon/process-setup';
import type * as Main from './main.js';

// `import()` would also read all files for the names of their exports, which takes longer.
startProgram(() => createRequire(__filename)('./main.js') as typeof Main);
