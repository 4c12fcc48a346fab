from marg_ray.cli import main

main()
