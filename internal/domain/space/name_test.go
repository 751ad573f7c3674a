package space_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "of a": true, "天気": true, "é-1": true, "spc": true, "spc-1": true, "run_1": true, strings.Repeat("ä", space.MaxName): true,
		"": false, strings.Repeat("ä", space.MaxName+1): false, "a\x00b": false, "a\nb": false, "a\tb": false, "a\x7fb": false, "a\u0085b": false,
		"a\u2028b": false,
		"a\u202eb": false, "a\u2066b": false, "a\u200eb": false, "a\u061cb": false, "a\u200bb": false, "a\u00adb": false, "a\u2060b": false,
		"👩\u200d💻": true, "\ufeffa": false, "a\xffb": false,
		".": false, "..": false, "...": true, ".a": true,
		"spc_1": false, "SPC_x": false, "spc_01M7YNAYM0SMK245AEDNVB5CNW": false, "run_01M7YNAYM0SMK245AEDNVB5CNW": false,
		"Run_01m7ynaym0smk245aednvb5cnw": false,
	} {
		if err := space.CheckName(name); (err == nil) != ok || err != nil && fault.CodeOf(err) != "space_name_invalid" {
			t.Errorf("%q: %v, want it taken: %t", name, err, ok)
		}
		if ok && space.IsID(name) {
			t.Errorf("%q is a name and taken for an identifier", name)
		}
	}
	for _, pair := range [][2]string{{"caf\u00e9", "cafe\u0301"}, {"\u1e69", "s\u0307\u0323"}, {"\uac00", "\u1100\u1161"}, {"a", "a"}} {
		if a, b := space.NameKey(pair[0]), space.NameKey(pair[1]); a != b {
			t.Errorf("%+q and %+q are two names", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"e", "\u00e9"}, {"a", "A"}, {"a\xff", "a\xfe"}, {"\ufb01", "fi"}} {
		if space.NameKey(pair[0]) == space.NameKey(pair[1]) {
			t.Errorf("%+q and %+q are one name", pair[0], pair[1])
		}
	}
	own := space.Space{ID: "spc_01M7YNAYM0SMK245AEDNVB5CNW"}
	if err := own.CheckName(string(own.ID)); err != nil {
		t.Errorf("a space may not be called by its own identifier: %v", err)
	}
	if err := own.CheckName("spc_01M7YNAYM0SMK245AEDNVB5CNX"); err == nil {
		t.Error("a space may be called by the identifier of another one")
	}
}
