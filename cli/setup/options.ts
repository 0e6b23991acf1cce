/** The options of `lacewing setup`: a part of the one table, with which it is read (options.ts). */
import type { OptionSpec } from "../options.ts";

export const SETUP_OPTIONS: readonly OptionSpec[] = [
  {
    name: "registry",
    type: "list",
    value: "HOST",
    default: null,
    meaning: "A registry to pull through the daemon, such as registry.example.com:5000; may be given several times. " +
      "http://HOST for one without TLS. Without it: containerd takes every registry, docker Docker Hub, podman and " +
      "CRI-O those that the daemon is configured with.",
    group: "Runtime",
    commands: ["setup"],
  },
  {
    name: "mirror",
    type: "url",
    value: "URL",
    default: null,
    meaning: "Where the runtime reaches the daemon's proxy. Without it the running daemon is asked, and without one " +
      "it is http://127.0.0.1:65001.",
    group: "Runtime",
    commands: ["setup"],
  },
  {
    name: "root",
    type: "folder",
    value: "DIR",
    default: "/",
    meaning: "Folder that stands for / of the machine, such as a mounted host.",
    group: "Runtime",
    commands: ["setup"],
  },
  {
    name: "dry-run",
    type: "bool",
    default: null,
    meaning: "Print the files as they would be, and write nothing.",
    group: "Runtime",
    commands: ["setup"],
  },
  {
    name: "remove",
    type: "bool",
    default: null,
    meaning: "Take back what setup wrote; with --registry only for these registries.",
    group: "Runtime",
    commands: ["setup"],
  },
];
