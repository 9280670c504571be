/** The files of the settings, for `LiveSettings`. */

import type { SettingsSource } from '@nodepool/daemon';
import { SETTINGS_PROBLEMS } from '../metrics.js';
import { readSettings, type Settings } from './settings.js';

export function settingsSource(file: string): SettingsSource<Settings> {
  return {
    read: () => readSettings(file),
    files: ({ tokenFile, tls }) => [file, tokenFile, tls?.cert, tls?.key].filter((each) => each !== undefined),
    problems: SETTINGS_PROBLEMS,
    describe: ({ tokens }) => ({ tokens: tokens.length }),
  };
}
