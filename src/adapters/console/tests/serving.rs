//! Binding the port, and shutdown.

use super::*;

#[tokio::test]
async fn a_port_in_use_is_reported_with_what_to_do() {
    let world = World::new().await;
    let settings = Server { listen: world.address.to_string(), ..settings() };

    let refusal = Console::bind(&settings, served(Arc::default()), rng(), clock(), Metrics::local()).await.err().unwrap();

    let expected =
        format!("{} is in use by another program; set server.listen to another port, or stop that program", world.address);
    assert_eq!(refusal.to_string(), expected);
}

#[tokio::test]
async fn a_setting_out_of_range_stops_the_start() {
    let settings = Server { max_sessions: 0, ..settings() };

    let refusal = Console::bind(&settings, served(Arc::default()), rng(), clock(), Metrics::local()).await.err().unwrap();

    assert_eq!(refusal.to_string(), "server.max_sessions: is 0, must be from 1 to 10000");
}

#[tokio::test]
async fn requests_in_flight_at_shutdown_are_answered() {
    let mut world = World::new().await;
    world.backend.add("slow");
    let request = tokio::spawn(world.request(Method::GET, "/api/rooms/slow/state").send());
    world.backend.entered.notified().await;

    world.stop.take().unwrap().send(()).unwrap();
    world.backend.proceed.notify_one();

    assert_eq!(request.await.unwrap().unwrap().status(), 200);
    world.served.await.unwrap();
}

#[tokio::test]
async fn requests_that_outlast_the_drain_are_cut_off() {
    let mut world = World::with(Server { drain_secs: 0.05, ..settings() }).await;
    world.backend.add("slow");
    let request = tokio::spawn(world.request(Method::GET, "/api/rooms/slow/state").send());
    world.backend.entered.notified().await;

    world.stop.take().unwrap().send(()).unwrap();
    world.served.await.unwrap();

    assert!(request.await.unwrap().is_err());
    assert!(TcpStream::connect(world.address).await.is_err());
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_shutdown() {
    let mut world = World::new().await;
    world.get("/healthz").await;
    let mut idle = world.connect().await;

    world.stop.take().unwrap().send(()).unwrap();
    world.served.await.unwrap();

    assert_eq!(read_all(&mut idle).await, "");
}
