// Uses a simulated GitHub through GitHub's own client, github.com/actions/scaleset, and prints what it got as JSON.
//
// The listener of the client serves every job with one runner: the stand-in, which is started as a process.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/actions/scaleset"
	"github.com/actions/scaleset/listener"
)

type setup struct {
	URL            string `json:"url"`
	ClientID       string `json:"clientId"`
	InstallationID int64  `json:"installationId"`
	AppKeyFile     string `json:"appKeyFile"`
	Token          string `json:"token"`
	Runner         string `json:"runner"`
	Jobs           int    `json:"jobs"`
	MaxRunners     int    `json:"maxRunners"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func text(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, scaleset.RunnerExistsError):
		return "runner exists"
	case errors.Is(err, scaleset.RunnerNotFoundError):
		return "runner not found"
	case strings.Contains(err.Error(), "RunnerScaleSetSessionConflictException"):
		return "session conflict"
	default:
		return err.Error()
	}
}

var info = scaleset.SystemInfo{System: "nodepool-test", Version: "1", CommitSHA: "none", Subsystem: "test"}

func client(s setup, path string) *scaleset.Client {
	key := must(os.ReadFile(s.AppKeyFile))
	return must(scaleset.NewClientWithGitHubApp(scaleset.ClientWithGitHubAppConfig{
		GitHubConfigURL: s.URL + "/" + path,
		GitHubAppAuth: scaleset.GitHubAppAuth{
			ClientID: s.ClientID, InstallationID: s.InstallationID, PrivateKey: string(key),
		},
		SystemInfo: info,
	}, scaleset.WithRetryWaitMax(100*time.Millisecond)))
}

func withToken(s setup, path string) *scaleset.Client {
	return must(scaleset.NewClientWithPersonalAccessToken(scaleset.NewClientWithPersonalAccessTokenConfig{
		GitHubConfigURL: s.URL + "/" + path, PersonalAccessToken: s.Token, SystemInfo: info,
	}))
}

// Serves jobs with the stand-in, at most one process for each assigned job.
type scaler struct {
	ctx       context.Context
	client    *scaleset.Client
	setup     setup
	setID     int
	stop      context.CancelFunc
	mu        sync.Mutex
	names     []string
	started   []string
	completed []string
	live      map[string]bool
	processes sync.WaitGroup
}

func (s *scaler) HandleJobStarted(_ context.Context, job *scaleset.JobStarted) error {
	s.started = append(s.started, fmt.Sprintf("%s/%s %s", job.OwnerName, job.RepositoryName, job.JobDisplayName))
	return nil
}

func (s *scaler) HandleJobCompleted(_ context.Context, job *scaleset.JobCompleted) error {
	s.mu.Lock()
	delete(s.live, job.RunnerName)
	s.mu.Unlock()
	s.completed = append(s.completed, job.Result)
	if len(s.completed) == s.setup.Jobs {
		s.stop()
	}
	return nil
}

func (s *scaler) HandleDesiredRunnerCount(ctx context.Context, count int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.live) < min(count, s.setup.MaxRunners) {
		name := fmt.Sprintf("go-%d", len(s.names)+1)
		settings := &scaleset.RunnerScaleSetJitRunnerSetting{Name: name, WorkFolder: "_work"}
		config, err := s.client.GenerateJitRunnerConfig(ctx, settings, s.setID)
		if err != nil {
			return 0, err
		}
		s.names = append(s.names, name)
		s.live[name] = true
		s.start(name, config.EncodedJITConfig)
	}
	return len(s.live), nil
}

func (s *scaler) start(name, config string) {
	folder := must(os.MkdirTemp("", "stand-in-"))
	program := filepath.Join(folder, "run.sh")
	must(0, os.WriteFile(program, must(os.ReadFile(s.setup.Runner)), 0o755))
	command := exec.Command(program)
	command.Env = append(os.Environ(), "ACTIONS_RUNNER_INPUT_JITCONFIG="+config, "RUNNER_ALLOW_RUNASROOT=1")
	s.processes.Go(func() {
		defer os.RemoveAll(folder)
		if output, err := command.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", name, err, output)
		}
	})
}

func main() {
	var s setup
	must(0, json.Unmarshal([]byte(os.Args[1]), &s))
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	facts := map[string]any{}
	c := client(s, "acme")

	group := must(c.GetRunnerGroupByName(ctx, scaleset.DefaultRunnerGroup))
	facts["group"] = []any{group.ID, group.Name, group.IsDefault}
	before := must(c.GetRunnerScaleSet(ctx, group.ID, "linux"))
	set := must(c.CreateRunnerScaleSet(ctx, &scaleset.RunnerScaleSet{
		Name: "linux", RunnerGroupID: group.ID, Labels: []scaleset.Label{{Name: "linux"}, {Name: "x64"}},
		RunnerSetting: scaleset.RunnerSetting{DisableUpdate: true},
	}))
	_, again := c.CreateRunnerScaleSet(ctx, &scaleset.RunnerScaleSet{Name: "linux", RunnerGroupID: group.ID})
	found := must(c.GetRunnerScaleSet(ctx, group.ID, "linux"))
	byID := must(c.GetRunnerScaleSetByID(ctx, set.ID))
	changed := must(c.UpdateRunnerScaleSet(ctx, set.ID, &scaleset.RunnerScaleSet{
		Labels: []scaleset.Label{{Name: "linux"}, {Name: "arm64"}},
	}))
	facts["set"] = map[string]any{
		"before": before == nil, "id": found.ID == set.ID && byID.ID == set.ID, "labels": found.Labels,
		"disableUpdate": byID.RunnerSetting.DisableUpdate, "again": again != nil, "changed": changed.Labels,
		"name": changed.Name, "isDated": !set.CreatedOn.IsZero(),
	}

	settings := &scaleset.RunnerScaleSetJitRunnerSetting{Name: "spare", WorkFolder: "_work"}
	spare := must(c.GenerateJitRunnerConfig(ctx, settings, set.ID))
	_, exists := c.GenerateJitRunnerConfig(ctx, settings, set.ID)
	byName := must(c.GetRunnerByName(ctx, "spare"))
	must(0, c.RemoveRunner(ctx, int64(spare.Runner.ID)))
	_, gone := c.GetRunner(ctx, spare.Runner.ID)
	nobody := must(c.GetRunnerByName(ctx, "spare"))
	facts["runner"] = map[string]any{
		"found": byName.ID == spare.Runner.ID, "set": byName.RunnerScaleSetID == set.ID, "exists": text(exists),
		"gone": text(gone), "byName": nobody == nil,
	}

	session := must(c.MessageSessionClient(ctx, set.ID, "witness"))
	_, second := c.MessageSessionClient(ctx, set.ID, "witness", scaleset.WithRetryMax(1))
	facts["second"] = text(second)
	listening, end := context.WithCancel(ctx)
	work := &scaler{ctx: ctx, client: c, setup: s, setID: set.ID, stop: end, live: map[string]bool{}}
	l := must(listener.New(session, listener.Config{ScaleSetID: set.ID, MaxRunners: s.MaxRunners}))
	fmt.Println("ready")
	err := l.Run(listening, work)
	work.processes.Wait()
	sort.Strings(work.started)
	sort.Strings(work.completed)
	facts["jobs"] = map[string]any{
		"started": work.started, "completed": work.completed, "runners": len(work.names),
		"end": errors.Is(err, context.Canceled),
	}
	must(0, session.Close(ctx))
	must(0, c.DeleteRunnerScaleSet(ctx, set.ID))
	_, deleted := c.GetRunnerScaleSetByID(ctx, set.ID)
	facts["deleted"] = deleted != nil

	for _, path := range []string{"acme/app", "enterprises/umbrella"} {
		_, err := withToken(s, path).GetRunnerScaleSet(ctx, 1, "none")
		facts[path] = text(err)
	}
	must(0, json.NewEncoder(os.Stdout).Encode(facts))
}
