/** The cases that the product does not follow on purpose, each with the reason. They must fail: one that passes is an error here. */
export const contradictions: Readonly<Record<string, string>> = {
  'FM-16':
    'A missing closing fence takes the leading key lines, so that the description of such a skill is not lost.',
  'DS-07':
    'The search goes down to the first skill file of a branch; public packs group their skills in folders.',
  'DS-08': 'The skill file is found in any case, as it is written in public packs.',
  'V3I-01':
    'Version 4 installs into the skills folder and keeps no registry; only an agent that version 3 installed is replaced where it stands.',
  'V3I-02': 'Version 4 installs a pack without an agent.toml under the name of its folder (IN-04).',
  'V3I-03': 'Version 4 installs into the skills folder; mcp.json arrives there (CL-19).',
  'V3I-07': 'Version 4 finds an installed agent by its folder and writes no entry into agents.toml.',
  'V3I-08': 'Version 4 finds an installed agent by its folder and writes no entry into agents.toml.',
  'V3I-14': 'Version 4 installs into the skills folder; the scripts of a skill arrive there.',
};
