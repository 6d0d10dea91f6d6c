{#- An incremental run looks at no more than the rows of the snapshot that have the keys of new rows, and those in their
    place. Both are written beside it. A snapshot of Delta or Iceberg is not built again: it takes the latter, the part,
    once they are published. -#}
{% macro mirror_part_before(snapshot, part) -%}
  select DBT_INTERNAL_DEST.* from {{ snapshot }} as DBT_INTERNAL_DEST
  left semi join {{ part.new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(part.keys) }}
{%- endmacro %}


{#- All rows of a next snapshot.

    Args:
      built: the relation with those that are in the place of others
      part: what these are -#}
{% macro mirror_with_part(snapshot, built, part, columns) %}
  {%- set names = columns | map(attribute='quoted') | join(', ') -%}
  select {{ names }} from {{ snapshot }} as DBT_INTERNAL_DEST
  {%- if part.keys %}
  left anti join {{ part.new_rows }} as DBT_INTERNAL_SOURCE on {{ mirror_same(part.keys) }}
  {%- endif %}
  union all
  select {{ names }} from {{ built }}
{%- endmacro %}


{#- 5. The snapshot takes a part. This can be repeated.

    Args:
      batch: that the part is published with; none for a node that is not mirrored
      fence: what the run is called that repeats it; none for the first one -#}
{% macro mirror_take_part(target, part, new_rows, keys, batch=none, fence=none) %}
  {{ return(adapter.dispatch('mirror_take_part', 'dbt')(target, part, new_rows, keys, batch, fence)) }}
{% endmacro %}

{% macro openmirroring__mirror_take_part(target, part, new_rows, keys, batch, fence) %}
  {%- if fence -%}
    {#- a server may still be at the INSERT of a run that died: Delta refuses what was begun before its table changed -#}
    {%- do run_query("alter table " ~ target ~ " set tblproperties ('openmirroring.recovered_by' = '" ~ fence ~ "')") -%}
  {%- endif -%}
  {%- set names = adapter.get_columns_in_relation(target) | map(attribute='quoted') | list -%}
  {%- if keys -%}
    {%- do run_query(mirror_merge_part(target, part, new_rows, keys, names)) -%}
  {%- elif not batch or run_query('select count(*) from ' ~ target).rows[0][0] != batch.table_rows -%}
    {#- unless an earlier run has done so, which died then -#}
    {%- set names = names | join(', ') -%}
    {%- do run_query('insert into ' ~ target ~ ' (' ~ names ~ ') select ' ~ names ~ ' from ' ~ part) -%}
  {%- endif -%}
  {%- if batch -%}
    {%- do run_query("alter table " ~ target ~ " set tblproperties ('" ~ adapter.batch_id_property() ~ "' = '" ~ batch.id ~ "')") -%}
    {%- do adapter.cache_batch(target, batch.id) -%}
  {%- endif -%}
  {%- do adapter.refresh_relation(target) -%}
{% endmacro %}

{#- Which state of a snapshot that can be changed in place this is: another one after every change. -#}
{% macro mirror_snapshot_version(target) %}
  {{ return(adapter.dispatch('mirror_snapshot_version', 'dbt')(target)) }}
{% endmacro %}

{% macro openmirroring__mirror_snapshot_version(target) %}
  {%- for row in run_query('show tblproperties ' ~ target).rows if row[0] == 'current-snapshot-id' -%}
    {{ return(row[1]) }}
  {%- endfor -%}
  {{ return(run_query('describe history ' ~ target ~ ' limit 1').rows[0][0] | string) }}
{% endmacro %}

{#- A key of new rows that is not in the part is one of a row that is to be deleted. -#}
{% macro mirror_merge_part(target, part, new_rows, keys, names) %}
  {%- set found = 'DBT_INTERNAL_SOURCE.' ~ adapter.quote(keys[0]) -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using (
    select {% for key in keys %}touched.{{ adapter.quote(key) }} as k{{ loop.index0 }}, {% endfor %}part.*
    from (select distinct {{ mirror_key_list(keys) }} from {{ new_rows }}) as touched
    left join {{ part }} as part on
      {%- for key in keys %} touched.{{ adapter.quote(key) }} = part.{{ adapter.quote(key) }} {{- ' and' if not loop.last }}{% endfor %}
  ) as DBT_INTERNAL_SOURCE
  on {% for key in keys %}DBT_INTERNAL_DEST.{{ adapter.quote(key) }} = DBT_INTERNAL_SOURCE.k{{ loop.index0 }} {{- ' and ' if not loop.last }}{% endfor %}
  when matched and {{ found }} is null then delete
  when matched then update set {% for name in names %}DBT_INTERNAL_DEST.{{ name }} = DBT_INTERNAL_SOURCE.{{ name }} {{- ', ' if not loop.last }}{% endfor %}
  when not matched and {{ found }} is not null then insert ({{ names | join(', ') }})
    values ({% for name in names %}DBT_INTERNAL_SOURCE.{{ name }} {{- ', ' if not loop.last }}{% endfor %})
{%- endmacro %}
