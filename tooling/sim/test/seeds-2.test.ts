/** Launchers keep the rules, whatever goes wrong around them. */

import { testShareOfSeeds } from './support/seeds.js';

testShareOfSeeds(2);
