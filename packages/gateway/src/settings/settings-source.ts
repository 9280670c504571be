/** The files of the settings, for `LiveSettings`. */

import { readFile } from 'node:fs/promises';
import { fileFaultOf } from '@nodepool/core';
import { SettingsError, type SettingsSource } from '@nodepool/daemon';
import { SETTINGS_PROBLEMS } from '../metrics.js';
import { readSettings, type Settings } from './settings.js';

export function settingsSource(file: string): SettingsSource<Settings> {
  return {
    read: async () => {
      const settings = await readSettings(file);
      if (settings.tls !== undefined) await checkReadable(file, settings.tls);
      return settings;
    },
    files: ({ tokenFile, tls }) => [file, tokenFile, tls?.cert, tls?.key].filter((each) => each !== undefined),
    problems: SETTINGS_PROBLEMS,
    describe: ({ tokens }) => ({ tokens: tokens.length }),
  };
}

/** Rejects with `SettingsError` if the certificate or its key cannot be read. */
async function checkReadable(settings: string, tls: Readonly<Record<'cert' | 'key', string>>): Promise<void> {
  const problems: string[] = [];
  for (const [key, file] of Object.entries(tls)) {
    try {
      await readFile(file);
    } catch (error) {
      problems.push(`tls.${key}: ${file} cannot be read: ${fileFaultOf(error)}; check the path and its permissions`);
    }
  }
  if (problems.length > 0) throw new SettingsError(settings, problems);
}
