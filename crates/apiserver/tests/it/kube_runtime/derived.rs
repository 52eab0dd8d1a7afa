//! Tests of a kind that `#[derive(CustomResource)]` of kube defines, and of its controller with a finalizer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use kube_derive::{CustomResource, KubeSchema};
use kube_informer_apiserver::Server;
use kube_runtime::Controller;
use kube_runtime::controller::Action;
use kube_runtime::finalizer::{self, Event, finalizer};
use kube_runtime::wait::{await_condition, conditions};
use kube_runtime::watcher::Config;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinSet;

use super::{both_strategies, client};
use crate::ask::builder;

const FINALIZER: &str = "sites.example.com/page";

/// Time until a controller must have done its work. Time is paused, so only a failing test waits.
const SETTLED: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, CustomResource, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus",
    shortname = "st",
    category = "all",
    printcolumn(name = "Pages", json_path = ".spec.pages", type_ = "integer"),
    scale(
        spec_replicas_path = ".spec.pages",
        status_replicas_path = ".status.pages"
    ),
    selectable = ".spec.theme",
    crates(kube_core = "kube_core")
)]
#[x_kube(
    crates(kube_core = "kube_core"),
    validation = ("self.pages >= oldSelf.pages", "pages are never removed")
)]
struct SiteSpec {
    /// Text of the first page.
    title: String,
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10))]
    pages: i32,
    #[serde(default)]
    theme: Theme,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Theme {
    #[default]
    Light,
    Dark,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct SiteStatus {
    pages: i32,
}

fn one() -> i32 {
    1
}

fn sites(server: &Server) -> Api<Site> {
    Api::default_namespaced(client(server))
}

fn site(title: &str) -> Site {
    let spec = json!({"title": title});
    Site::new("a", serde_json::from_value(spec).unwrap())
}

/// Stores a config map with the title of the site, and the number of its pages as the status.
async fn apply(site: Arc<Site>, client: Client) -> Result<Action, kube_client::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let data = json!({"data": {"title": site.spec.title}});
    let patched = maps
        .patch(
            &site.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&data),
        )
        .await;
    if let Err(kube_client::Error::Api(status)) = &patched
        && status.is_not_found()
    {
        let map = ConfigMap {
            metadata: kube_core::ObjectMeta {
                name: site.metadata.name.clone(),
                owner_references: site.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..Default::default()
            },
            data: Some([("title".to_owned(), site.spec.title.clone())].into()),
            ..Default::default()
        };
        maps.create(&PostParams::default(), &map).await?;
    } else {
        patched?;
    }
    let sites: Api<Site> = Api::default_namespaced(client);
    let status = json!({"status": SiteStatus { pages: site.spec.pages }});
    let patch = Patch::Merge(&status);
    sites
        .patch_status(&site.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(Action::await_change())
}

async fn clean_up(site: Arc<Site>, client: Client) -> Result<Action, kube_client::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.delete(&site.name_any(), &DeleteParams::default())
        .await?;
    Ok(Action::await_change())
}

type Failure = finalizer::Error<kube_client::Error>;

async fn reconcile(site: Arc<Site>, client: Arc<Client>) -> Result<Action, Failure> {
    let client = Client::clone(&client);
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    finalizer(&sites, FINALIZER, site, |event| async move {
        match event {
            Event::Apply(site) => apply(site, client).await,
            Event::Cleanup(site) => clean_up(site, client).await,
        }
    })
    .await
}

/// Starts a controller, which ends when the returned set is dropped.
fn controller(server: &Server, config: Config) -> JoinSet<()> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(server));
    let running = Controller::new(sites(server), config.clone())
        .owns(maps, config)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client(server)),
        );
    let mut tasks = JoinSet::new();
    tasks.spawn(running.for_each(|_| std::future::ready(())));
    tasks
}

/// Waits until a site exists and meets `condition`.
async fn until(sites: &Api<Site>, condition: impl Fn(&Site) -> bool) {
    let condition = move |site: Option<&Site>| site.is_some_and(&condition);
    let waited = await_condition(sites.clone(), "a", condition);
    let waited = tokio::time::timeout(SETTLED, waited).await;
    waited.expect("the condition holds in time").unwrap();
}

fn has_pages(pages: i32) -> impl Fn(&Site) -> bool {
    move |site| {
        site.status
            .as_ref()
            .is_some_and(|status| status.pages == pages)
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_a_finalizer_creates_updates_and_deletes_what_it_owns() {
    for config in both_strategies() {
        let server = builder().build();
        let definitions: Api<CustomResourceDefinition> = Api::all(client(&server));
        definitions
            .create(&PostParams::default(), &Site::crd())
            .await
            .unwrap();
        let established = conditions::is_crd_established();
        await_condition(definitions.clone(), Site::crd_name(), established)
            .await
            .unwrap();
        let controller = controller(&server, config);
        let sites = sites(&server);
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));

        let created = sites
            .create(&PostParams::default(), &site("first"))
            .await
            .unwrap();
        until(&sites, has_pages(1)).await;
        let map = maps.get("a").await.unwrap();
        assert_eq!(map.data.unwrap()["title"], "first");
        assert_eq!(
            map.metadata.owner_references.unwrap()[0].uid,
            created.uid().unwrap()
        );
        assert_eq!(sites.get("a").await.unwrap().finalizers(), [FINALIZER]);

        maps.delete("a", &DeleteParams::default()).await.unwrap();
        let exists = |map: Option<&ConfigMap>| map.is_some();
        let restored = await_condition(maps.clone(), "a", exists);
        tokio::time::timeout(SETTLED, restored)
            .await
            .expect("the owned object is created again")
            .unwrap();

        let change = json!({"spec": {"title": "second", "pages": 3}});
        let params = PatchParams::default();
        sites
            .patch("a", &params, &Patch::Merge(&change))
            .await
            .unwrap();
        until(&sites, has_pages(3)).await;
        let map = maps.get("a").await.unwrap();
        assert_eq!(map.data.unwrap()["title"], "second");

        sites.delete("a", &DeleteParams::default()).await.unwrap();
        let uid = created.uid().unwrap();
        let gone = await_condition(sites.clone(), "a", conditions::is_deleted(&uid));
        tokio::time::timeout(SETTLED, gone)
            .await
            .expect("the finalizer is removed")
            .unwrap();
        assert!(maps.get_opt("a").await.unwrap().is_none());
        drop(controller);
    }
}

#[tokio::test(start_paused = true)]
async fn a_derived_definition_sets_defaults_and_rejects_values() {
    let server = builder().crd(Site::crd()).build();
    let sites = sites(&server);
    let post = PostParams::default();
    let created = sites.create(&post, &site("first")).await.unwrap();
    let of_defaults = SiteSpec {
        title: "first".to_owned(),
        pages: 1,
        theme: Theme::Light,
        owner: None,
    };
    assert_eq!(created.spec, of_defaults);
    assert_eq!(created.metadata.generation, Some(1));

    let refusal = |change: serde_json::Value| {
        let sites = sites.clone();
        async move {
            let params = PatchParams::default();
            let patched = sites.patch("a", &params, &Patch::Merge(&change)).await;
            patched.expect_err("the value is invalid").to_string()
        }
    };
    let too_many = refusal(json!({"spec": {"pages": 11}})).await;
    assert!(
        too_many.contains("spec.pages in body should be less than or equal to 10"),
        "{too_many}"
    );
    let unknown = refusal(json!({"spec": {"theme": "blue"}})).await;
    assert!(
        unknown.contains("Unsupported value: \"blue\": supported values: \"light\", \"dark\""),
        "{unknown}"
    );
    let grown = json!({"spec": {"pages": 2, "theme": "dark"}});
    let params = PatchParams::default();
    sites
        .patch("a", &params, &Patch::Merge(&grown))
        .await
        .unwrap();
    let fewer = refusal(json!({"spec": {"pages": 1}})).await;
    assert!(fewer.contains("pages are never removed"), "{fewer}");

    let dark = kube_client::api::ListParams::default().fields("spec.theme=dark");
    assert_eq!(sites.list(&dark).await.unwrap().items.len(), 1);
    let light = kube_client::api::ListParams::default().fields("spec.theme=light");
    assert_eq!(sites.list(&light).await.unwrap().items.len(), 0);
    assert_eq!(
        sites.get_scale("a").await.unwrap().spec.unwrap().replicas,
        Some(2)
    );
}
