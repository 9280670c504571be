import { importDirection } from './import-direction.mjs';
import { plainEnglish } from './plain-english.mjs';

export default {
  meta: { name: 'nodepool' },
  rules: { 'import-direction': importDirection, 'plain-english': plainEnglish },
};
