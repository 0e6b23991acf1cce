/**
 * Real HTTP servers of Debian's packages over one folder, each on a free port
 * of loopback: nginx (HTML, JSON, XML and WebDAV), Apache (plain, fancy, table
 * and WebDAV), lighttpd, Caddy and Python.
 */

/** A server that runs, and the URLs of the folder by how it is told. */
export interface FolderServer extends AsyncDisposable {
  readonly urls: Record<string, string>;
}

const START_TIMEOUT_MS = 10_000;
const DAV_MODULE = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so";

export const SERVERS = {
  nginx: { program: "nginx", start: startNginx },
  "nginx WebDAV": { program: DAV_MODULE, start: startNginxDav },
  apache: { program: "apache2", start: startApache },
  lighttpd: { program: "lighttpd", start: startLighttpd },
  caddy: { program: "caddy", start: startCaddy },
  python: { program: "python3", start: startPython },
};

/** Whether this machine has the program, which is a name or an absolute path. */
export function isInstalled(program: string): boolean {
  const folders = program.startsWith("/") ? [""] : ["/usr/sbin/", "/usr/bin/", "/usr/local/bin/"];
  return folders.some((folder) => {
    try {
      return Deno.statSync(folder + program).isFile;
    } catch {
      return false;
    }
  });
}

/** A server's process with the folder of its files. */
class Running implements FolderServer {
  private constructor(
    readonly urls: Record<string, string>,
    private readonly home: string,
    private readonly process: Deno.ChildProcess,
  ) {}

  static async start(
    urls: Record<string, string>,
    { home, command, env = {} }: { home: string; command: readonly string[]; env?: Record<string, string> },
  ): Promise<Running> {
    const [program = "", ...args] = command;
    const output = { stdin: "null", stdout: "null", stderr: "null" } as const;
    const process = new Deno.Command(program, { args, env, ...output }).spawn();
    const running = new Running(urls, home, process);
    try {
      await answers(Object.values(urls)[0]!);
    } catch (error) {
      await running[Symbol.asyncDispose]();
      throw error;
    }
    return running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.process.kill("SIGTERM");
    } catch {
      // It has ended by itself.
    }
    await this.process.status;
    await Deno.remove(this.home, { recursive: true });
  }
}

async function answers(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (true) {
    try {
      return (await Deno.connect({ hostname, port: Number(port) })).close();
    } catch (error) {
      if (performance.now() > deadlineMs) throw new Error(`no server answers at ${url}`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

function freePorts(count: number): number[] {
  const listeners = Array.from({ length: count }, () => Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  return listeners.map((listener) => {
    listener.close();
    return listener.addr.port;
  });
}

/** A folder for a server's own files that its workers, another user, can write to. */
function makeHome(): string {
  const home = Deno.makeTempDirSync({ prefix: "lacewing-test-" });
  Deno.chmodSync(home, 0o777);
  return home;
}

function nginxConfig(home: string, servers: string, modules = ""): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${home}/${name};`).join(" ");
  const path = `${home}/nginx.conf`;
  Deno.writeTextFileSync(
    path,
    `${modules} daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
    ${Deno.uid() === 0 ? "user root;" : ""} events {} http { access_log off; ${temporary} ${servers} }`,
  );
  return path;
}

async function startNginx(folder: string): Promise<FolderServer> {
  const home = makeHome();
  const [html = 0, json = 0, xml = 0] = freePorts(3);
  const server = (port: number, format: string) =>
    `server { listen 127.0.0.1:${port}; root ${folder}; autoindex on; autoindex_format ${format}; charset utf-8; }`;
  const config = nginxConfig(home, server(html, "html") + server(json, "json") + server(xml, "xml"));
  const url = (port: number) => `http://127.0.0.1:${port}/`;
  const command = ["nginx", "-c", config, "-p", home];
  return await Running.start({ html: url(html), json: url(json), xml: url(xml) }, { home, command });
}

async function startNginxDav(folder: string): Promise<FolderServer> {
  const home = makeHome();
  const [port = 0] = freePorts(1);
  const server =
    `server { listen 127.0.0.1:${port}; root ${folder}; dav_methods off; dav_ext_methods PROPFIND OPTIONS; }`;
  const config = nginxConfig(home, server, `load_module ${DAV_MODULE};`);
  return await Running.start({ webdav: `http://127.0.0.1:${port}/` }, {
    home,
    command: ["nginx", "-c", config, "-p", home],
  });
}

async function startApache(folder: string): Promise<FolderServer> {
  const home = makeHome();
  const [port = 0] = freePorts(1);
  const modules = ["mpm_event", "authz_core", "alias", "autoindex", "dir", "mime", "dav", "dav_fs"]
    .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join("\n");
  const styles = { plain: "None", fancy: "FancyIndexing", table: "FancyIndexing HTMLTable" };
  const places = Object.entries(styles).map(([name, options]) =>
    `Alias /${name} "${folder}"\n<Location /${name}>\nOptions +Indexes\nIndexOptions ${options} Charset=UTF-8\n</Location>`
  ).join("\n");
  const config = `${home}/apache.conf`;
  Deno.writeTextFileSync(
    config,
    `${modules}
TypesConfig /dev/null
ServerName localhost
Listen 127.0.0.1:${port}
PidFile ${home}/pid
ErrorLog ${home}/error.log
DavLockDB ${home}/lock
Mutex file:${home}
${Deno.uid() === 0 ? "User www-data\nGroup www-data" : ""}
<Directory "${folder}">
Require all granted
Options FollowSymLinks
IndexIgnoreReset ON
</Directory>
${places}
Alias /dav "${folder}"
<Location /dav>
Dav On
</Location>
`,
  );
  const url = (name: string) => `http://127.0.0.1:${port}/${name}/`;
  const urls = { plain: url("plain"), fancy: url("fancy"), table: url("table"), webdav: url("dav") };
  return await Running.start(urls, { home, command: ["apache2", "-f", config, "-D", "FOREGROUND"] });
}

async function startLighttpd(folder: string): Promise<FolderServer> {
  const home = makeHome();
  const [port = 0] = freePorts(1);
  const config = `${home}/lighttpd.conf`;
  Deno.writeTextFileSync(
    config,
    `server.document-root = "${folder}"\nserver.bind = "127.0.0.1"\nserver.port = ${port}
server.modules = ( "mod_dirlisting" )\ndir-listing.activate = "enable"\ndir-listing.encoding = "utf-8"\nmimetype.assign = ( "" => "application/x-data" )\n`,
  );
  return await Running.start({ html: `http://127.0.0.1:${port}/` }, {
    home,
    command: ["lighttpd", "-D", "-f", config],
  });
}

async function startCaddy(folder: string): Promise<FolderServer> {
  const home = makeHome();
  const [port = 0] = freePorts(1);
  const config = `${home}/Caddyfile`;
  Deno.writeTextFileSync(
    config,
    `{\nadmin off\n}\nhttp://127.0.0.1:${port} {\nbind 127.0.0.1\nroot * ${folder}\nfile_server browse\n}\n`,
  );
  const command = ["caddy", "run", "--config", config, "--adapter", "caddyfile"];
  const env = { HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home };
  return await Running.start({ browse: `http://127.0.0.1:${port}/` }, { home, command, env });
}

async function startPython(folder: string): Promise<FolderServer> {
  const home = makeHome();
  const [port = 0] = freePorts(1);
  const command = ["python3", "-m", "http.server", String(port), "--bind", "127.0.0.1", "--directory", folder];
  return await Running.start({ html: `http://127.0.0.1:${port}/` }, { home, command });
}
