//! What stands between a source and its server, and loses connections.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

#[derive(Clone)]
pub(crate) struct Proxy {
    server: String,
    /// What ends the connection, once the server sends it.
    ends_at: &'static str,
    cut: Arc<Notify>,
    refuse: Arc<AtomicUsize>,
}

impl Proxy {
    /// Its address is the second value.
    pub(crate) async fn start(server: &str, ends_at: &'static str) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (server, cut, refuse) = (server.to_owned(), Arc::default(), Arc::default());
        let proxy = Self { server, ends_at, cut, refuse };
        tokio::spawn(proxy.clone().run(listener));
        (proxy, address)
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    /// The next so many connections come to nothing.
    pub(crate) fn refuse(&self, connections: usize) {
        self.refuse.store(connections, Ordering::Relaxed);
    }

    fn refuses(&self) -> usize {
        self.refuse.load(Ordering::Relaxed)
    }

    async fn run(self, listener: TcpListener) {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            if self.refuses() > 0 {
                self.refuse.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let proxy = self.clone();
            tokio::spawn(async move { proxy.forward(client).await });
        }
    }

    async fn forward(self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(&self.server).await?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let mut buffer = vec![0; 65_536];
        let mut cut = std::pin::pin!(self.cut.notified());
        cut.as_mut().enable();
        let up = tokio::io::copy(&mut from_client, &mut to_server);
        let down = async {
            loop {
                let read = from_server.read(&mut buffer).await?;
                if read == 0 || String::from_utf8_lossy(&buffer[..read]).contains(self.ends_at) {
                    return io::Result::Ok(());
                }
                to_client.write_all(&buffer[..read]).await?;
            }
        };
        tokio::select! {
            up = up => up.map(drop),
            down = down => down,
            () = cut => Ok(()),
        }
    }
}
