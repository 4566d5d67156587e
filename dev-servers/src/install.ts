import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Env } from 'platform/core/config.ts';
import { allDone } from './all-done.ts';
import { must } from './command.ts';
import { KAFKA_VERSION, kafkaFolder } from './kafka.ts';
import { SECANTUSDB_VERSION, secantusFolder } from './mongodb.ts';
import { JAVA, MAVEN, PYTHON, REDIS, STRACE, provide } from './packages.ts';
import type { Say } from './say.ts';

/** Brings what is missing into `engines`; an interrupted installation leaves nothing that is taken for one. @throws StartError */
export async function install(engines: string, env: Env, say: Say): Promise<void> {
  const kafka = kafkaFolder(engines);
  const secantus = secantusFolder(engines);
  await provide(
    [JAVA, REDIS, STRACE, ...(existsSync(kafka) ? [] : [MAVEN]), ...(existsSync(secantus) ? [] : [PYTHON])],
    env,
    say,
  );
  await allDone([
    whole(kafka, async (folder) => {
      say(`installing Kafka ${KAFKA_VERSION} (Maven Central)`);
      writeFileSync(join(folder, 'pom.xml'), POM);
      await must(
        'mvn',
        ['mvn', '-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`],
        env,
        folder,
      );
    }),
    whole(secantus, async (folder) => {
      say(`installing SecantusDB ${SECANTUSDB_VERSION} (PyPI)`);
      await must('python3 -m venv', ['python3', '-m', 'venv', folder], env);
      await must(
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

/** Makes `folder` by way of one beside it, unless it is there. */
async function whole(folder: string, make: (folder: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return;
  const prefix = `${folder}.partial-`;
  for (const name of readdirSync(dirname(folder)))
    if (name.startsWith(basename(prefix))) rmSync(join(dirname(folder), name), { recursive: true, force: true });
  const partial = mkdtempSync(prefix);
  await make(partial);
  renameSync(partial, folder);
}

/** With a logger that writes warnings to standard error. */
const POM = `<project><modelVersion>4.0.0</modelVersion><groupId>engines</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${KAFKA_VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
`;
