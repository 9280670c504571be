/** The file of the settings, for `LiveSettings`. Keys and tokens are read at each login. */

import type { SettingsSource } from '@nodepool/daemon';
import { SETTINGS_PROBLEMS } from '../metrics.js';
import { readSettings, type Settings } from './settings.js';

export function settingsSource(file: string): SettingsSource<Settings> {
  return {
    read: () => readSettings(file),
    files: () => [file],
    problems: SETTINGS_PROBLEMS,
    describe: ({ installations }) => ({ installations: installations.map(({ name }) => name) }),
  };
}
