select
    cast(`id` as bigint) as `id`,
    cast(`placed` as timestamp) as `placed`,
    cast(`tags` as string) as `tags`,
    cast(`it's ``odd``` as string) as `it's ``odd```
  from openmirroring_mirrored
