// Checks rendered Kubernetes objects (YAML on standard input) against Kubernetes' own schemas, as the npm packages
// kubernetes-models and @kubernetes-models/cert-manager carry them: values by their validators, and the names of fields,
// which those let pass, by TypeScript's check of object literals. Of a JobSet the Jobs in it are checked as Jobs and the
// rest by the fields that JobSet's documentation names. Run by schemas.sh in the folder that has the packages.
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const require = createRequire(`${process.cwd()}/`);
const yaml = require('js-yaml');

const JOB_SET = {
  spec: ['network', 'replicatedJobs', 'successPolicy', 'failurePolicy', 'startupPolicy', 'suspend', 'coordinator',
         'managedBy', 'ttlSecondsAfterFinished'],
  replicatedJob: ['name', 'groupName', 'replicas', 'template', 'dependsOn'],
  successPolicy: ['operator', 'targetReplicatedJobs'],
  failurePolicy: ['maxRestarts', 'restartStrategy', 'rules'],
  template: ['metadata', 'spec'],
};

const problems = [];

function knows(object, fields, where) {
  for (const field of Object.keys(object)) {
    if (!fields.includes(field)) problems.push(`${where}: there is no field ${field}`);
  }
}

function packageOf({apiVersion, kind}) {
  const group = apiVersion.startsWith('cert-manager.io/') ? '@kubernetes-models/cert-manager' : 'kubernetes-models';
  return `./node_modules/${group}/${apiVersion}/${kind}.js`;  // not all are exported under shorter names
}

const literals = [];

function check(object, where) {
  if (object.kind === 'JobSet') return checkJobSet(object, where);
  const from = packageOf(object);
  const {[object.kind]: Model} = require(from);
  try {
    new Model(object).validate();
  } catch (error) {
    problems.push(`${where}: ${error.message}`);
  }
  const i = literals.length;
  literals.push(`// ${where}\nimport type {I${object.kind} as T${i}} from "${from}";\n` +
                `export const o${i}: T${i} = ${JSON.stringify(object, null, 1)};\n`);
}

function checkJobSet({apiVersion, metadata, spec}, where) {
  if (apiVersion !== 'jobset.x-k8s.io/v1alpha2') problems.push(`${where}: there is no JobSet ${apiVersion}`);
  knows(spec, JOB_SET.spec, where);
  knows(spec.successPolicy ?? {}, JOB_SET.successPolicy, where);
  knows(spec.failurePolicy ?? {}, JOB_SET.failurePolicy, where);
  const names = spec.replicatedJobs.map(({name}) => name);
  for (const target of spec.successPolicy?.targetReplicatedJobs ?? []) {
    if (!names.includes(target)) problems.push(`${where}: there is no replicated job ${target}`);
  }
  for (const job of spec.replicatedJobs) {
    knows(job, JOB_SET.replicatedJob, `${where} ${job.name}`);
    knows(job.template, JOB_SET.template, `${where} ${job.name}`);
    check({apiVersion: 'batch/v1', kind: 'Job', metadata: {name: `${metadata.name}-${job.name}-0`}, spec: job.template.spec},
          `${where} ${job.name}`);
  }
}

const objects = yaml.loadAll(readFileSync(0, 'utf8')).filter(Boolean);
if (objects.length === 0) problems.push('there is no object');
for (const object of objects) check(object, `${object.kind} ${object.metadata.name}`);

writeFileSync('objects.mts', literals.join('\n'));
try {
  execFileSync('node_modules/.bin/tsc', ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'node16',
                                         '--moduleResolution', 'node16', 'objects.mts']);
} catch (error) {
  problems.push(String(error.stdout || error));
}
for (const problem of problems) console.error(problem);
console.log(`${objects.length} objects, ${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
