#!/usr/bin/env node
import process from 'node:process'
import { runCommandLine } from './cli/program.ts'

process.exitCode = await runCommandLine(process.argv, { out: process.stdout, err: process.stderr })
// What is stuck, such as a connection to a server that is silent, does not keep a program up that has ended. Output that a
// reader has not taken yet does.
setInterval(() => {
  if (process.stdout.writableLength + process.stderr.writableLength === 0) process.exit()
}, 2_000).unref()
