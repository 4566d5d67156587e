import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { runStep, settleAll } from './command.ts';
import { KAFKA_VERSION, kafkaFolder } from './kafka.ts';
import { SECANTUSDB_VERSION, secantusFolder } from './mongodb.ts';
import { JAVA, MAVEN, PYTHON, REDIS, STRACE, installPackages } from './packages.ts';
import type { PrintProgress } from './progress.ts';

/**
 * Installs what is missing into `engines`. An installation that was interrupted is not taken for a complete one.
 * @throws StartError
 */
export async function install(engines: string, env: Env, print: PrintProgress): Promise<void> {
  const kafka = kafkaFolder(engines);
  const secantus = secantusFolder(engines);
  await installPackages(
    [JAVA, REDIS, STRACE, ...(existsSync(kafka) ? [] : [MAVEN]), ...(existsSync(secantus) ? [] : [PYTHON])],
    env,
    print,
  );
  await settleAll([
    installAtomically(kafka, async (folder) => {
      print(`installing Kafka ${KAFKA_VERSION} (Maven Central)`);
      writeFileSync(join(folder, 'pom.xml'), POM);
      await runStep(
        'mvn',
        ['mvn', '-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`],
        env,
        folder,
      );
    }),
    installAtomically(secantus, async (folder) => {
      print(`installing SecantusDB ${SECANTUSDB_VERSION} (PyPI)`);
      await runStep('python3 -m venv', ['python3', '-m', 'venv', folder], env);
      await runStep(
        'pip',
        [
          join(folder, 'bin/python3'),
          '-m',
          'pip',
          'install',
          '-q',
          '--disable-pip-version-check',
          `SecantusDB==${SECANTUSDB_VERSION}`,
        ],
        env,
      );
    }),
  ]);
}

/** Unless `folder` exists, makes it under a temporary name and renames it when it is complete. */
async function installAtomically(folder: string, make: (folder: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return;
  const prefix = `${folder}.partial-`;
  for (const name of readdirSync(dirname(folder)))
    if (name.startsWith(basename(prefix))) rmSync(join(dirname(folder), name), { recursive: true, force: true });
  const partial = mkdtempSync(prefix);
  await make(partial);
  renameSync(partial, folder);
}

/** slf4j-simple writes Kafka's log to standard error. */
const POM = `<project><modelVersion>4.0.0</modelVersion><groupId>engines</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${KAFKA_VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
`;
